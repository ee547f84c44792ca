use super::limits::version_of;

#[test]
fn a_kernel_says_its_version_in_many_ways() {
    for (release, version) in [("6.18.44-fc-v669", (6, 18)), ("5.14", (5, 14)), ("6.1-rc3+", (6, 1)), ("x", (0, 0)), ("", (0, 0))]
    {
        assert_eq!(version_of(release), version, "{release}");
    }
}
