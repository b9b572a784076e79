python3 -c "import numpy" || { echo "NumPy is missing"; exit 77; }
