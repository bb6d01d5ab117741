"""The paper and its rivals: benchmark, reproduction, methods of other packages, and the paper's figures."""
