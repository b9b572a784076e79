# A text of half a million characters would be read for a minute: this one has some thousand.
for _ in $(seq 100); do echo "ROMEO: is the day so young, or JULIET: is it the nightingale?"; done >input.txt
