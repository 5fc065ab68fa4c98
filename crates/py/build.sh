# Sourced: builds the wheel and installs it into a folder of its own, first on PYTHONPATH; `python`
# is the interpreter. $1: what else it needs, as modules.
skip() { echo "skipped: $what (needs $1)"; exit 0; }

python=${FULLPIPE_PYTHON:-python3}
command -v "$python" >/dev/null || skip 'Python 3.11 or later'
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || skip 'Python 3.11 or later'
for module in maturin numpy $1; do
    "$python" -c "import $module" 2>/dev/null || skip "pip install -r crates/py/requirements.txt"
done
target=$(cargo metadata --format-version 1 --no-deps | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
rm -rf "$target/py"
"$python" -m maturin build --quiet --profile dev --locked --out "$target/py/wheel"
"$python" -m pip install --quiet --no-deps --target "$target/py/site" "$target"/py/wheel/*.whl
export PYTHONPATH=$target/py/site
