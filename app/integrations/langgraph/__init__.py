"""The dialect of LangGraph's checkpoint savers."""
