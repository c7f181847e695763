"""Who owns what: tenants and their keys, agents, users, projects, and what models cost them."""
