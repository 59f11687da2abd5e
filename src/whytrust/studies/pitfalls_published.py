"""Numbers that Wang & Wang (2022) give, to stand beside ours."""

CITATION = "Wang & Wang (2022), A Unified Study of Machine Learning Explanation Evaluation Metrics"
ENHANCED = {"AlexNet": {"raw": 0.00086, "enhanced": 0.64664, "trained": 0.52558},
            "VGG-16": {"raw": 0.00102, "enhanced": 0.99956, "trained": 0.72230},
            "MnasNet": {"raw": 0.00110, "enhanced": 0.64588, "trained": 0.71718}}
"""Table 2: accuracy of untrained nets on raw and on enhanced images, and of trained nets on raw ones (ImageNet)."""
POINTING = {"standard": {"accuracy": 0.7951, "pointing": 1.0}, "manipulated": {"accuracy": 0.7951, "pointing": 0.0}}
"""Table 3 (MNIST)."""
LABELS = (0, 0, 1)
"""Appendix E: the label of the whole input, without its first feature, and without its second."""
