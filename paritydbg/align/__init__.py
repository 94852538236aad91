"""Which events of two captured runs stand for each other; whether they are equal is judged elsewhere."""
