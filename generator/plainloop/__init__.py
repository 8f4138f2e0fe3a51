"""What stands around the template: it reads the catalogue, renders projects in memory, and keeps the examples."""
