"""The builds of work orders: their names, patches and promotion."""
