//! Tests of recovering damaged stores.

use super::damage::bytes;
use super::*;
use std::collections::{BTreeMap, BTreeSet};

const SESSIONS: usize = 8;

fn id(number: usize) -> String {
    format!("{number:032x}")
}

/// Returns enough records that neighbouring records rarely share a page.
fn said(number: usize) -> Vec<Record> {
    (0..4).map(|n| queue(&format!("{number} says {n} {}", noise(number * 10 + n, 3_300)))).collect()
}

/// Returns incompressible text.
fn noise(seed: usize, length: usize) -> String {
    let mut state = seed as u64 + 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'0' + ((state >> 40) % 75) as u8)
    };
    (0..length).map(|_| next()).filter(|letter| *letter != '\\').collect()
}

/// Creates a store in which every second session is packed. `open` is whether the store is left as a killed process
/// would leave it, with its log.
fn sound(open: bool) -> TempDir {
    let dir = TempDir::new().unwrap();
    let copy = TempDir::new().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let mut claims = Vec::new();
    for number in 0..SESSIONS {
        let claim = store.create(session(&id(number)));
        append(&store, &id(number), said(number), Durability::Process);
        if number % 2 == 1 {
            claims.push(claim);
        }
    }
    if open {
        for file in ["aye.db", "aye.db-wal"] {
            fs::copy(dir.path().join(file), copy.path().join(file)).unwrap();
        }
        return copy;
    }
    drop((claims, store));
    dir
}

/// Opens and closes a copy of the store. Returns the notice, and the number of sessions that lost nothing.
fn salvaged(dir: &TempDir) -> (String, usize) {
    let (notice, whole) = saved(dir);
    (notice, whole.len())
}

fn saved(dir: &TempDir) -> (String, BTreeSet<usize>) {
    let before = bytes(dir.path());
    let store = Store::open(dir.path()).unwrap();
    let notice = store.notices().join("\n");
    let whole = (0..SESSIONS)
        .filter(|number| store.load(&SessionId::new(id(*number))).is_ok_and(|loaded| loaded.records == said(*number)))
        .collect();
    if !notice.is_empty() {
        let after = bytes(dir.path());
        let ours = |name: &str| name.ends_with("lock") || name.ends_with("salvaged");
        for (name, content) in before.iter().filter(|(name, _)| !ours(name)) {
            let kept = after.iter().any(|(now, kept)| now.contains("damaged") && kept == content);
            assert!(kept, "{name} is not kept as it was: {notice}");
        }
        // The recovered store is usable, and is not considered damaged again.
        let claim = store.create(session(ID));
        append(&store, ID, vec![prompt("hi")], Durability::Process);
        drop((claim, store));
        assert_eq!(Store::open(dir.path()).unwrap().notices(), [""; 0]);
    }
    (notice, whole)
}

fn path(dir: &TempDir) -> PathBuf {
    dir.path().join("aye.db")
}

#[test]
fn a_damaged_index_loses_no_session() {
    for index in
        ["sqlite_autoindex_records_1", "sqlite_autoindex_sessions_1", "sqlite_autoindex_packed_1", "sessions_by_workspace"]
    {
        let dir = sound(false);
        let root: i64 = Connection::open(path(&dir))
            .unwrap()
            .query_row("SELECT rootpage FROM sqlite_schema WHERE name = ?1", [index], |row| row.get(0))
            .unwrap();
        let mut content = fs::read(path(&dir)).unwrap();
        content[(root as usize - 1) * 4096..][..4096].fill(0xa5);
        fs::write(path(&dir), content).unwrap();
        let (notice, whole) = salvaged(&dir);
        assert_eq!(whole, SESSIONS, "{index}: {notice}");
        assert!(notice.contains("damaged") && notice.contains("8 of 8 sessions recovered"), "{notice}");
    }
}

#[test]
fn salvage_counts_recovered_partial_and_lost_sessions_and_entries() {
    let dir = sound(false);
    let connection = Connection::open(path(&dir)).unwrap();
    let key = |number: usize| -> i64 {
        connection.query_row("SELECT key FROM sessions WHERE id = ?1", [id(number)], |row| row.get(0)).unwrap()
    };
    // An unreadable page loses an entry of one session and the row of another.
    connection.execute("PRAGMA foreign_keys = off", []).unwrap();
    let last: i64 = connection
        .query_row(
            "SELECT max(last) FROM (SELECT last FROM packed WHERE session = ?1 UNION SELECT seq FROM records WHERE session = ?1)",
            [key(1)],
            |row| row.get(0),
        )
        .unwrap();
    let beyond_a_gap = (key(1), last + 2, serde_json::to_string(&prompt("after the gap")).unwrap());
    let insert = "INSERT INTO records (session, seq, json, time) VALUES (?1, ?2, ?3, 0)";
    assert_eq!(connection.execute(insert, beyond_a_gap).unwrap(), 1);
    assert_eq!(connection.execute("DELETE FROM sessions WHERE key = ?1", [key(3)]).unwrap(), 1);
    let index = "SELECT rootpage FROM sqlite_schema WHERE name = 'sessions_by_workspace'";
    let root: i64 = connection.query_row(index, [], |row| row.get(0)).unwrap();
    drop(connection);
    let mut content = fs::read(path(&dir)).unwrap();
    content[(root as usize - 1) * 4096..][..4096].fill(0xa5);
    fs::write(path(&dir), content).unwrap();
    let (notice, whole) = salvaged(&dir);
    let words =
        "7 of 8 sessions recovered, 1 of them partially, 1 lost; 29 of 34 entries (messages, results, steps) recovered, 5 lost";
    assert!(notice.contains(words) && !notice.contains("unknown"), "{notice}");
    assert_eq!(whole, 6);
}

/// Whichever page is damaged, the reported counts match the recovered content and no loss goes unreported.
#[test]
fn salvage_counts_are_correct_whichever_page_is_damaged() {
    let files = bytes(sound(false).path());
    let all = SESSIONS as i64 * 4;
    let (mut unknown, mut known, mut empty) = (0, 0, 0);
    for page in 0..files["aye.db"].len() / PAGE {
        let mut files = files.clone();
        let content = if page % 3 == 0 { vec![0; PAGE] } else { noise(page, 2 * PAGE).into_bytes() };
        files.get_mut("aye.db").unwrap()[page * PAGE..][..PAGE].copy_from_slice(&content[..PAGE]);
        let dir = written(&files);
        let salvage = schema::rescue(&path(&dir)).unwrap();
        let (notice, whole) = saved(&written(&files));
        // A store that SQLite considers sound is not recovered.
        if notice.is_empty() {
            continue;
        }
        assert!(notice.contains(&salvage.describe()), "page {page}: {notice}");
        let store = Store::open(dir.path()).unwrap();
        let loaded: Vec<_> =
            store.sessions(None).unwrap().iter().map(|one| store.load(&one.session_id).unwrap().records).collect();
        let readable: usize = loaded.iter().flatten().filter(|record| **record != Record::Unreadable).count();
        let told = (salvage.saved, salvage.entries);
        assert_eq!(told, (loaded.len(), readable as i64), "page {page}: {notice}");
        let without = loaded.iter().filter(|records| records.iter().all(|record| *record == Record::Unreadable)).count();
        assert_eq!(salvage.empty, without, "page {page}: {notice}");
        let said_whole = salvage.saved - salvage.in_part - salvage.empty;
        if salvage.may_miss_more {
            assert!(said_whole >= whole.len() && salvage.entries + salvage.lost_entries <= all, "page {page}: {notice}");
            assert!(notice.contains("unknown number"), "page {page}: {notice}");
        } else {
            assert_eq!((said_whole, salvage.entries + salvage.lost_entries), (whole.len(), all), "page {page}: {notice}");
        }
        unknown += usize::from(salvage.may_miss_more);
        known += usize::from(salvage.lost_entries > 0);
        empty += usize::from(salvage.empty > 0);
    }
    assert!(unknown > 0 && known > 0 && empty > 0, "{unknown} {known} {empty}");
}

#[test]
fn a_damaged_decision_log_loses_no_session() {
    let dir = sound(false);
    let connection = Connection::open(path(&dir)).unwrap();
    let root: i64 =
        connection.query_row("SELECT rootpage FROM sqlite_schema WHERE name = 'decisions'", [], |row| row.get(0)).unwrap();
    drop(connection);
    let mut content = fs::read(path(&dir)).unwrap();
    content[(root as usize - 1) * 4096..][..4096].fill(0x5a);
    fs::write(path(&dir), content).unwrap();
    let (notice, whole) = salvaged(&dir);
    assert_eq!(whole, SESSIONS, "{notice}");
}

#[test]
fn sessions_survive_the_loss_of_the_first_page_or_a_root_page() {
    for page in ["first", "records"] {
        let dir = sound(false);
        let connection = Connection::open(path(&dir)).unwrap();
        let root: i64 =
            connection.query_row("SELECT rootpage FROM sqlite_schema WHERE name = 'records'", [], |row| row.get(0)).unwrap();
        drop(connection);
        let mut content = fs::read(path(&dir)).unwrap();
        let at = if page == "first" { 0 } else { root as usize - 1 };
        content[at * 4096..][..4096].fill(0);
        fs::write(path(&dir), content).unwrap();
        let (notice, whole) = salvaged(&dir);
        assert_eq!(whole, SESSIONS, "{page}: {notice}");
    }
}

#[test]
fn records_left_in_the_wal_by_a_killed_process_are_salvaged() {
    let dir = sound(true);
    let mut content = fs::read(path(&dir)).unwrap();
    content[..4096].fill(0x11);
    fs::write(path(&dir), content).unwrap();
    // The log contains the first page again, so SQLite detects no damage. Without the main file, it does.
    fs::remove_file(path(&dir)).unwrap();
    let (notice, whole) = salvaged(&dir);
    assert_eq!(whole, SESSIONS, "{notice}");
    assert!(notice.contains("the main database file is missing"), "{notice}");
}

#[test]
fn an_interrupted_salvage_is_finished_by_the_next_start() {
    for moved in [false, true] {
        let dir = sound(false);
        let mut content = fs::read(path(&dir)).unwrap();
        content[..4096].fill(0);
        fs::write(path(&dir), &content).unwrap();
        schema::rescue(&path(&dir)).unwrap();
        if moved {
            quarantine::move_aside(&path(&dir)).unwrap();
        }
        let store = Store::open(dir.path()).unwrap();
        assert!(store.notices()[0].contains("damaged"), "{:?}", store.notices());
        assert_eq!(store.sessions(None).unwrap().len(), SESSIONS);
        assert!(bytes(dir.path()).values().any(|kept| *kept == content));
        drop(store);
        assert_eq!(Store::open(dir.path()).unwrap().notices(), [""; 0]);
    }
}

#[test]
fn a_salvage_interrupted_between_two_renames_keeps_the_wal() {
    let dir = sound(true);
    schema::rescue(&path(&dir)).unwrap();
    fs::rename(quarantine::with_suffix(&path(&dir), "-wal"), dir.path().join("aye.db.damaged-1-wal")).unwrap();
    let (notice, whole) = salvaged(&dir);
    assert_eq!(whole, SESSIONS, "{notice}");
}

#[test]
fn an_open_task_is_marked_as_missing_its_end_after_a_salvage() {
    let dir = TempDir::new().unwrap();
    {
        let store = Store::open(dir.path()).unwrap();
        let _claim = store.create(session(ID));
        append(&store, ID, vec![prompt("hi")], Durability::Process);
    }
    let mut content = fs::read(path(&dir)).unwrap();
    content[..100].fill(0);
    fs::write(path(&dir), content).unwrap();
    let store = Store::open(dir.path()).unwrap();
    assert_eq!(store.load(&SessionId::new(ID)).unwrap().records, [prompt("hi"), Record::Unreadable]);
}

type Files = BTreeMap<String, Vec<u8>>;

fn written(files: &Files) -> TempDir {
    let dir = TempDir::new().unwrap();
    for (name, content) in files {
        fs::write(dir.path().join(name), content).unwrap();
    }
    dir
}

/// For each page of the database, returns the sessions that are lost if that page is.
fn lost_with(files: &Files) -> Vec<BTreeSet<usize>> {
    let lost = |page: usize| {
        let mut files = files.clone();
        files.get_mut("aye.db").unwrap()[page * PAGE..][..PAGE].fill(0);
        let (_, whole) = saved(&written(&files));
        (0..SESSIONS).filter(|number| !whole.contains(number)).collect()
    };
    (0..files["aye.db"].len() / PAGE).map(lost).collect()
}

const PAGE: usize = 4096;

#[test]
fn salvage_never_panics_and_recovers_all_undamaged_sessions() {
    let cases: u64 = std::env::var("AYE_SALVAGE_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(150);
    let stores = [sound(false), sound(true)].map(|dir| bytes(dir.path()));
    let lost = [lost_with(&stores[0]), lost_with(&stores[1])];
    for lost in &lost {
        // The session list fits on one page, and every other page belongs to at most two sessions.
        let wide = lost.iter().filter(|sessions| sessions.len() > 2).count();
        assert!(wide <= 1, "{lost:?}");
    }
    let mut state = 3u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    for case in 0..cases {
        let which = random(4) / 3;
        let mut files = stores[which].clone();
        let content = files.get_mut("aye.db").unwrap();
        let count = content.len() / PAGE;
        let mut touched = BTreeSet::new();
        match random(4) {
            0 => {
                let cut = random(content.len());
                touched.extend(cut / PAGE..count);
                content.truncate(cut);
            }
            1 => {
                for _ in 0..=random(3) {
                    let page = random(count);
                    content[page * PAGE..][..PAGE].iter_mut().for_each(|byte| *byte = random(256) as u8);
                    touched.insert(page);
                }
            }
            _ => {
                for _ in 0..=random(6) {
                    let at = if random(3) == 0 { random(PAGE) } else { random(content.len()) };
                    content[at] ^= 1 + random(255) as u8;
                    touched.insert(at / PAGE);
                }
            }
        }
        // A store that claims to be from a newer aye is left unchanged.
        if matches!(Store::open(written(&files).path()), Err(StoreError::Newer { .. })) {
            continue;
        }
        let (notice, whole) = saved(&written(&files));
        let may_be_lost: BTreeSet<usize> = touched.iter().flat_map(|page| lost[which][*page].clone()).collect();
        let must: BTreeSet<usize> = (0..SESSIONS).filter(|number| !may_be_lost.contains(number)).collect();
        assert!(whole.is_superset(&must), "case {case}: {whole:?} of {must:?} with pages {touched:?} touched; {notice}");
    }
}
