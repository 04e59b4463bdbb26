"""How data crosses, on both sides: frames, codec, tensors, exceptions, graphs. Plain data only."""
