"""Results to figures, one figure a file; the only room with matplotlib."""
