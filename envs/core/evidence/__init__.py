"""What claims and studies are made of."""
