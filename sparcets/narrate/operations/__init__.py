"""Changes as people say them: earlier, faster, larger, higher, smoother, a peak more; of features, joints, limbs."""
