"""What only bodies need: skeletons, limbs, stick figures, and the simulator of ball catching."""
