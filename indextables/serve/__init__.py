"""Read-only servers over tables: a console, Elasticsearch's search API, and MCP for agents."""
