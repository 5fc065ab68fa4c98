# Sourced: makes the package in a folder of its own, first on PYTHONPATH; `python` is the
# interpreter. $1: what else it needs, as modules. With WHEEL=1 it is built as a wheel and installed
# from that, as users get it.
skip() { echo "skipped: $what (needs $1)"; exit 0; }

python=${FULLPIPE_PYTHON:-python3}
command -v "$python" >/dev/null || skip 'Python 3.11 or later'
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || skip 'Python 3.11 or later'
for module in ${WHEEL:+maturin} numpy $1; do
    "$python" -c "import $module" 2>/dev/null || skip "pip install -r crates/py/requirements.txt"
done
target=$(cargo metadata --format-version 1 --no-deps | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
rm -rf "$target/py"
if [[ -n ${WHEEL:-} ]]; then
    "$python" -m maturin build --quiet --profile dev --locked --out "$target/py/wheel"
    "$python" -m pip install --quiet --no-deps --target "$target/py/site" "$target"/py/wheel/*.whl
else
    # Together with all that `make test` builds: alone, the crates below it would have other
    # features, and most of them would be built once more.
    crates=(--workspace)
    pkg-config --exists libelf zlib 2>/dev/null || crates+=(--exclude fullpipe-tune)
    cargo build --quiet --locked "${crates[@]}" --lib --tests
    mkdir -p "$target/py/site"
    cp -r python/fullpipe "$target/py/site"
    cp "$target/debug/libfullpipe_native.so" "$target/py/site/fullpipe/_native.abi3.so"
fi
export PYTHONPATH=$target/py/site
