"""Pages with pictures from results. Computes nothing that is not shown."""
