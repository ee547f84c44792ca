fn main() {
    aye::main();
}
