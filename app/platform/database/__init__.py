"""PostgreSQL: connections, transactions, roles, and what every table shares."""
