. "$NEEDS/folders.sh"
. "$NEEDS/runs.sh"
ln -s runs/shakespeare RUN
ln -s gpt2-folder FOLDER
printf 'the rain\nin spain\n' >lines.txt
