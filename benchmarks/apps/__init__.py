"""What runs inside the workers that are measured."""
