use super::*;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use tempfile::TempDir;

#[test]
fn cve_2026_35603_a_managed_policy_writable_by_others_is_rejected() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("policy.toml");
    std::fs::write(&path, "schema_version = 1\n").unwrap();
    let with = |mode: u32, owner: u32| {
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        writable_by_others(&path.metadata().unwrap(), path.metadata().unwrap().uid() + owner)
    };
    assert_eq!(with(0o644, 0), None);
    for mode in [0o664, 0o646, 0o666] {
        assert_eq!(with(mode, 0), Some("is writable by its group or by everyone"));
    }
    assert_eq!(with(0o644, 1), Some("is owned by another user"));
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o666)).unwrap();
    let refused = check_ownership(&path, &path.metadata().unwrap()).unwrap_err().to_string();
    assert!(refused.contains("cannot use") && refused.contains("root"), "{refused}");
}

#[test]
fn errors_in_a_policy_quote_the_invalid_line() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("policy.toml");
    std::fs::write(&path, "schema_version = 1\n[llm]\nallowed_model = [\"x\"]\n").unwrap();
    let error = bundle(&path, &mut blake3::Hasher::new(), accept_any_owner, Bundle::parse_bytes).unwrap_err();
    let error = error.into_problem().text();
    assert!(
        error.contains("line 3") && error.contains("allowed_models") && error.contains("3 │ allowed_model = [\"x\"]"),
        "{error}"
    );
}
