"""What takes many processes and minutes; `make storm`."""
