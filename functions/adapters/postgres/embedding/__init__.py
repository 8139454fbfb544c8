"""What administrators do with embedding servers, and the indexes of their vectors."""
