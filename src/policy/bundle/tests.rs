use super::*;

#[test]
fn the_built_in_bundle_parses() {
    let bundle = Bundle::built_in().expect("parses");
    assert_eq!(bundle.granted, ["File.Delete", "File.Read", "File.Write", "Network.Http", "Shell.Exec"]);
}
