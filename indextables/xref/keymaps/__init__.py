"""Key maps: from the hash of a term to the splits that hold it, over any number of splits."""
