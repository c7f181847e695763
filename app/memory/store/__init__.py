"""Items that applications keep in namespaces, such as LangGraph's long-term memory."""
