"""What is asked of nodes and machines: before anything is touched, and while the testbed runs."""
