"""What workers write: the pages, chunks and vectors of a batch, and translations."""
