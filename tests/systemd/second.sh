# The second boot.
