"""What training costs: the regularizer's share, and how near to the floor."""
