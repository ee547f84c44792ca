use super::*;
use std::os::unix::fs::PermissionsExt;

const KEY: &str = "sk-\"odd\"\\key-4711";

fn credentials(dir: &tempfile::TempDir) -> Credentials {
    Credentials::in_directories(&Directories::new(dir.path().join("config"), dir.path().join("data")))
}

#[test]
fn saved_keys_can_be_read_and_removed() {
    let dir = tempfile::tempdir().unwrap();
    credentials(&dir).keep_in_file("my own/provider", &ApiKey::new(KEY)).unwrap();
    credentials(&dir).keep_in_file("anthropic", &ApiKey::new("other-key-1")).unwrap();
    let read = credentials(&dir);
    assert_eq!(read.names().unwrap(), ["anthropic", "my own/provider"]);
    assert_eq!(read.secret("my own/provider").unwrap().unwrap().reveal(), KEY);
    assert_eq!((read.storage_of("anthropic"), read.storage_of("openai")), (Ok(Some(KeyStorage::File)), Ok(None)));
    assert_eq!(read.known_values(), ["other-key-1", KEY]);
    assert!(!format!("{read:?}").contains("4711"));
    for (name, was) in [("anthropic", Some(KeyStorage::File)), ("anthropic", None), ("my own/provider", Some(KeyStorage::File))] {
        assert_eq!(credentials(&dir).forget(name), Ok(was));
    }
    assert!(!read.file().unwrap().exists(), "an empty file is no use to anyone");
}

#[test]
fn keys_in_the_keyring_are_listed_without_a_keyring_query() {
    let dir = tempfile::tempdir().unwrap();
    let path = credentials(&dir).file().unwrap().to_owned();
    private::update::<PrivateError>(&path, 100, |_| Ok(Some(b"[openai]\nkeyring = true\n".to_vec()))).unwrap();
    let read = credentials(&dir);
    assert_eq!((read.storage_of("openai"), read.file_secret("openai")), (Ok(Some(KeyStorage::Keyring)), Ok(None)));
    assert_eq!(read.known_values(), Vec::<String>::new());
}

#[test]
fn errors_in_a_credentials_file_name_the_line_and_never_quote_the_content() {
    for (text, line) in [
        ("[a]\nkey = \"sk-hush\"\n\n[b]\nkye = \"sk-hush\"\n", 5),
        ("key = \"sk-hush\"\n", 1),
        ("[a]\nkey = \"sk-hush\"\nkeyring = true\n", 1),
        ("[a]\nkeyring = \"sk-hush\"\n", 2),
        ("[a]\nkey = \"  \"\n", 2),
        ("[a]\nkey = \"sk-hush\n", 2),
    ] {
        let error = parse(text.as_bytes(), Path::new("/c/credentials.toml")).unwrap_err().to_string();
        assert!(error.contains(&format!("`/c/credentials.toml` line {line}:")) && !error.contains("hush"), "{text}: {error}");
    }
}

#[test]
fn credentials_readable_by_other_users_are_rejected_with_a_fix() {
    let dir = tempfile::tempdir().unwrap();
    credentials(&dir).keep_in_file("anthropic", &ApiKey::new(KEY)).unwrap();
    let path = credentials(&dir).file().unwrap().to_owned();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
    for error in [credentials(&dir).storage_of("anthropic").unwrap_err(), credentials(&dir).forget("anthropic").unwrap_err()] {
        let error = error.to_string();
        assert!(error.contains("chmod 600") && error.contains("credentials.toml") && !error.contains("4711"), "{error}");
    }
}

#[test]
fn keys_saved_by_other_processes_are_found_after_a_reload_and_old_keys_stay_redacted() {
    let dir = tempfile::tempdir().unwrap();
    let here = credentials(&dir);
    assert_eq!(here.storage_of("anthropic"), Ok(None));
    credentials(&dir).keep_in_file("anthropic", &ApiKey::new(KEY)).unwrap();
    assert_eq!(here.storage_of("anthropic"), Ok(None), "nothing is read twice without need");
    here.reload();
    assert_eq!(here.file_secret("anthropic"), Ok(Some(ApiKey::new(KEY))));
    here.keep_in_file("anthropic", &ApiKey::new("another-key-1")).unwrap();
    assert_eq!(here.file_secret("anthropic"), Ok(Some(ApiKey::new("another-key-1"))));
    assert_eq!(here.known_values(), ["another-key-1", KEY]);
}
