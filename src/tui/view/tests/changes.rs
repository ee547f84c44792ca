use super::*;
use crate::tui::layers::ChangesView;

fn changed_file(path: &str, status: ChangeStatus, diff: &str, by: &[ChangedBy]) -> ChangedFile {
    let count =
        |sign| diff.lines().filter(|line| line.starts_with(sign) && !line.starts_with("+++") && !line.starts_with("---")).count();
    ChangedFile {
        path: path.to_owned(),
        status,
        diff: FileDiffs::read(diff),
        added: count('+') as u64,
        removed: count('-') as u64,
        by: by.to_vec(),
        note: diff.is_empty().then(|| "not text: 12 bytes before, 40 now".to_owned()),
    }
}

fn changes() -> ChangedFiles {
    let edit = "diff --git a/src/main.rs b/src/main.rs\n--- a/src/main.rs\n+++ b/src/main.rs\n@@ -1,3 +1,4 @@\n fn main() {\n\
                -    greet(\"\");\n+    let name = name();\n+    greet(&name);\n }\n";
    let new = "diff --git a/notes.md b/notes.md\n--- /dev/null\n+++ b/notes.md\n@@ -0,0 +1,1 @@\n+a note\u{1b}[31m\n";
    let files = vec![
        changed_file("assets/logo.png", ChangeStatus::Modified, "", &[ChangedBy::Outside]),
        changed_file("notes.md", ChangeStatus::Added, new, &[ChangedBy::Command]),
        changed_file("src/main.rs", ChangeStatus::Modified, edit, &[ChangedBy::Tool, ChangedBy::Command]),
    ];
    let (added, removed) = files.iter().fold((0, 0), |(a, r), file| (a + file.added, r + file.removed));
    ChangedFiles { files, added, removed, ..ChangedFiles::default() }
}

fn asked(model: &mut UiModel, changed: ChangedFiles) {
    for letter in "/diff".chars() {
        key(model, KeyCode::Char(letter));
    }
    assert_eq!(key(model, KeyCode::Enter), 2, "the draft is saved, the list is asked for");
    tell(model, EventKind::ChangedFiles(changed), 19_100);
}

#[test]
fn the_list_of_changed_files_matches_its_snapshots() {
    check("changes", |model| {
        cards(model);
        asked(model, changes());
        key(model, KeyCode::Char('p'));
    });
}

#[test]
fn the_change_list_opens_only_on_request_and_keeps_focus() {
    let mut model = model(80, 24);
    tell(&mut model, EventKind::ChangedFiles(changes()), 100);
    assert!(!picture(&mut model, 200).contains("Changed since this session began"), "nobody asked");
    asked(&mut model, changes());
    let drawn = picture(&mut model, 19_200);
    assert!(drawn.contains("not text: 12 bytes before") && drawn.contains("3 files (+3 −1)"), "{drawn}");
    key(&mut model, KeyCode::Char('n'));
    let drawn = picture(&mut model, 19_300);
    assert!(drawn.contains("a note") && !drawn.contains('\u{1b}'), "{drawn}");
    key(&mut model, KeyCode::Char('r'));
    let mut fewer = changes();
    fewer.files.remove(0);
    tell(&mut model, EventKind::ChangedFiles(fewer), 19_400);
    let drawn = picture(&mut model, 19_500);
    assert!(drawn.contains("a note") && !drawn.contains("logo.png"), "the file that was open is open: {drawn}");
    tell(&mut model, EventKind::ApprovalRequested(edit_approval("b")), 19_600);
    let drawn = picture(&mut model, 40_000);
    assert!(
        drawn.contains("tab to review") && drawn.contains("Changed since this session began"),
        "no question takes the keys: {drawn}"
    );
    key(&mut model, KeyCode::Tab);
    assert!(model.dialogs.is_open());
    key(&mut model, KeyCode::Esc);
    key(&mut model, KeyCode::Esc);
    assert!(!model.layers.is_open::<ChangesView>());
}

#[test]
fn a_change_list_without_changes_matches_its_snapshots() {
    check("changes-none", |model| {
        let notes = vec!["changes by other programs are not tracked: the workspace has more than 200000 files".to_owned()];
        asked(model, ChangedFiles { notes, ..ChangedFiles::default() });
    });
}

#[test]
fn a_truncated_change_list_shows_which_file_is_open() {
    let mut model = model(40, 12);
    let mut many = changes();
    many.files.extend(std::iter::repeat_n(many.files[1].clone(), 5));
    asked(&mut model, many);
    key(&mut model, KeyCode::Char('n'));
    let drawn = picture(&mut model, 19_200);
    assert!(drawn.contains("2 of 8") && drawn.contains("n p switch file"), "{drawn}");
}
