"""Benchmarks: the regularizer's overhead, and speed beside the floor."""
