//! The binary: starts the library.

fn main() {
    aye::main();
}
