//! Tests that open a store in a directory that contains unexpected files.

use super::*;
use crate::protocol::Problem;
use std::collections::BTreeMap;

/// Returns the content of every file in a directory.
pub(super) fn bytes(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let files = fs::read_dir(dir).unwrap().map(Result::unwrap).filter(|entry| entry.path().is_file());
    files.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())).collect()
}

#[test]
fn a_damaged_store_is_moved_aside_byte_for_byte() {
    let sound = TempDir::new().unwrap();
    {
        let store = Store::open(sound.path()).unwrap();
        let _claim = store.create(session(ID));
        append(&store, ID, (0..200).map(|n| queue(&n.to_string().repeat(200))).collect(), Durability::Power);
    }
    let whole = fs::read(sound.path().join("aye.db")).unwrap();
    let mut scrambled = whole.clone();
    let middle = whole.len() / 2;
    // Overwrite all pages except the first and the last one.
    scrambled[4096..whole.len() - 4096].fill(0x5a);
    let foreign = {
        let path = sound.path().join("foreign.db");
        Connection::open(&path).unwrap().execute_batch("CREATE TABLE notes (text)").unwrap();
        fs::read(path).unwrap()
    };
    let tables_gone = {
        let path = sound.path().join("gone.db");
        fs::write(&path, &whole).unwrap();
        Connection::open(&path).unwrap().execute_batch("DROP TABLE records").unwrap();
        fs::read(path).unwrap()
    };
    for (name, content, wal) in [
        ("empty", Vec::new(), None),
        ("a byte", vec![b'S'], None),
        ("text", b"this is no database, it is a text of some length\n".repeat(50), None),
        ("cut in the header", whole[..60].to_vec(), None),
        ("cut in a page", whole[..5000].to_vec(), None),
        ("cut in half", whole[..middle].to_vec(), Some(b"a log".to_vec())),
        ("scrambled", scrambled, Some(Vec::new())),
        ("zeros", vec![0; 8192], None),
        ("foreign", foreign, None),
        ("without its tables", tables_gone, None),
    ] {
        let dir = TempDir::new().unwrap();
        fs::write(dir.path().join("aye.db"), &content).unwrap();
        if let Some(wal) = &wal {
            fs::write(dir.path().join("aye.db-wal"), wal).unwrap();
        }
        let store = Store::open(dir.path()).unwrap();
        let notice = store.notices().join("\n");
        assert!(notice.contains("damaged"), "{name}: {notice}");
        let (_, moved) = notice.split_once("moved to `").unwrap();
        let moved = PathBuf::from(moved.split('`').next().unwrap());
        assert_eq!(moved.parent(), Some(dir.path()), "{name}");
        assert!(fs::read(&moved).unwrap() == content, "{name}: the bytes changed");
        if let Some(wal) = wal {
            assert!(fs::read(quarantine::with_suffix(&moved, "-wal")).unwrap() == wal, "{name}: the log changed");
        }
        let _claim = store.create(session(OTHER));
        append(&store, OTHER, vec![prompt("hi")], Durability::Power);
        drop(store);
        assert!(Store::open(dir.path()).unwrap().notices().is_empty(), "{name}: the new store is sound");
    }
}

#[test]
fn a_directory_or_orphaned_wal_in_place_of_the_store_is_moved_aside() {
    let dir = TempDir::new().unwrap();
    fs::create_dir(dir.path().join("aye.db")).unwrap();
    fs::write(dir.path().join("aye.db/kept"), "kept").unwrap();
    let store = Store::open(dir.path()).unwrap();
    assert!(store.notices()[0].contains("damaged"));
    let moved = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path().join("kept")).find(|path| path.exists());
    assert_eq!(fs::read_to_string(moved.unwrap()).unwrap(), "kept");

    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("aye.db-wal"), "records of a store that is gone").unwrap();
    let store = Store::open(dir.path()).unwrap();
    assert!(store.notices()[0].contains("damaged"));
    assert!(bytes(dir.path()).values().any(|content| content == b"records of a store that is gone"));
}

#[test]
fn two_damaged_stores_in_one_second_do_not_overwrite_each_other() {
    let dir = TempDir::new().unwrap();
    for content in ["first", "second", "third"] {
        fs::write(dir.path().join("aye.db"), content).unwrap();
        drop(Store::open(dir.path()).unwrap());
    }
    let kept = bytes(dir.path());
    for content in ["first", "second", "third"] {
        assert!(kept.values().any(|bytes| bytes == content.as_bytes()), "{content}");
    }
}

#[test]
fn in_concurrent_starts_one_creates_the_store_and_one_moves_a_damaged_store_aside() {
    let dir = TempDir::new().unwrap();
    let starts = || {
        std::thread::scope(|scope| {
            let starts: Vec<_> = (0..8).map(|_| scope.spawn(|| Store::open(dir.path()).unwrap().notices().len())).collect();
            starts.into_iter().map(|start| start.join().unwrap()).sum::<usize>()
        })
    };
    assert_eq!(starts(), 0);
    fs::write(dir.path().join("aye.db"), "damaged").unwrap();
    assert_eq!(starts(), 1);
}

#[test]
fn a_newer_store_is_rejected_and_unchanged() {
    let dir = TempDir::new().unwrap();
    drop(Store::open(dir.path()).unwrap());
    let path = dir.path().join("aye.db");
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let before = fs::read(&path).unwrap();
    let error = Store::open(dir.path()).err().unwrap();
    assert!(matches!(error, StoreError::Newer { found: 99, .. }));
    assert!(error.to_string().contains("written by a newer version of aye"), "{error}");
    assert!(fs::read(&path).unwrap() == before);
}

#[test]
fn an_unusable_data_directory_is_an_error_with_a_hint() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    for place in [file.clone(), file.join("below")] {
        let message = Problem::from(Store::open(&place).err().unwrap()).one_line();
        assert!(message.contains(&format!("`{}`", place.display())), "{message}");
        assert!(message.contains("not a directory") && message.contains("AYE_DATA_DIR"), "{message}");
    }
}

#[cfg(unix)]
#[test]
fn missing_permissions_on_the_data_directory_are_an_error_with_a_hint() {
    use std::os::unix::fs::PermissionsExt;
    let dir = TempDir::new().unwrap();
    drop(Store::open(dir.path()).unwrap());
    fs::set_permissions(dir.path().join("aye.db"), fs::Permissions::from_mode(0o400)).unwrap();
    let opened = Store::open(dir.path());
    if nix::unistd::geteuid().is_root() {
        eprintln!("skipped: nothing is forbidden to root");
        return;
    }
    let message = opened.err().unwrap().to_string();
    assert!(message.contains("permission denied") && message.contains("aye.db"), "{message}");
}

#[cfg(unix)]
#[test]
fn the_store_is_readable_only_by_its_owner() {
    use std::os::unix::fs::PermissionsExt;
    let dir = TempDir::new().unwrap();
    let data = dir.path().join("a/b");
    let store = Store::open(&data).unwrap();
    let _claim = store.create(session(ID));
    append(&store, ID, vec![prompt("hi")], Durability::Process);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&dir.path().join("a")), mode(&data)), (0o700, 0o700));
    for file in ["aye.db", "aye.db-wal", "aye.db-shm", "aye.lock"] {
        assert_eq!(mode(&data.join(file)), 0o600, "{file}");
    }
}

#[test]
fn flipped_bytes_neither_prevent_opening_nor_alter_the_store_moved_aside() {
    let sound = TempDir::new().unwrap();
    {
        let store = Store::open(sound.path()).unwrap();
        let _claim = store.create(session(ID));
        append(&store, ID, (0..100).map(|n| queue(&n.to_string().repeat(100))).collect(), Durability::Process);
    }
    let whole = fs::read(sound.path().join("aye.db")).unwrap();
    // Damage each byte of the header, then bytes all over the file.
    for at in (0..100).chain((0..100).map(|step| 100 + step * 7919 % (whole.len() - 100))) {
        let mut flipped = whole.clone();
        flipped[at] ^= 0xff;
        let dir = TempDir::new().unwrap();
        fs::write(dir.path().join("aye.db"), &flipped).unwrap();
        match Store::open(dir.path()) {
            Ok(store) if store.notices().is_empty() => {}
            Ok(_) => assert!(bytes(dir.path()).values().any(|kept| *kept == flipped), "byte {at}: what was moved aside changed"),
            Err(StoreError::Newer { .. }) => {
                assert!(fs::read(dir.path().join("aye.db")).unwrap() == flipped, "byte {at}: a refused store changed");
            }
            Err(error) => panic!("byte {at}: {error}"),
        }
    }
}
