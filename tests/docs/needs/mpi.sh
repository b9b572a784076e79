[ -e "$XTAPE_MPI" ] && mpirun --version 2>/dev/null | grep -q "Open MPI" || { echo "Open MPI is missing"; exit 77; }
