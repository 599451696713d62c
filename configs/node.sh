# What every Ray command on a machine of a cluster needs: `. ~/rayapp/configs/node.sh && ray start ...`.
PATH="$HOME/venv/bin:$PATH"
ulimit -n 65536
set -a
. /etc/rayapp.env
. "$HOME/rayapp/configs/serve.env"
set +a
