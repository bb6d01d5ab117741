"""Files and folders written as a whole, archives of many answers, and engines that run work in parallel."""
