use super::*;

fn overwrite(bench: &Bench, content: &str) -> ToolResult {
    bench.call("WriteFile", json!({"path": "f", "content": content}))
}

#[track_caller]
fn refused(result: ToolResult) {
    let error = result.error.unwrap();
    assert_eq!(error.code, ErrorCode::Conflict);
    assert!(error.message.contains("changed since you read it") && error.message.contains("read it again"), "{error}");
}

#[test]
fn a_file_changed_since_it_was_read_is_not_overwritten() {
    let bench = Bench::new();
    bench.write("f", "one\n");
    bench.output("ReadFile", json!({"path": "f"}));
    bench.write("f", "theirs\n");
    refused(overwrite(&bench, "mine\n"));
    assert_eq!(bench.read("f"), b"theirs\n");
    bench.output("ReadFile", json!({"path": "f", "offset": 1, "limit": 1}));
    assert_eq!(overwrite(&bench, "mine\n").status, ToolStatus::Succeeded);
    assert_eq!(bench.read("f"), b"mine\n");
}

#[test]
fn unread_and_deleted_files_can_be_written() {
    let bench = Bench::new();
    bench.write("f", "one\n");
    assert_eq!(overwrite(&bench, "two\n").status, ToolStatus::Succeeded);
    fs::remove_file(bench.path("f")).unwrap();
    assert_eq!(overwrite(&bench, "three\n").status, ToolStatus::Succeeded);
}

#[test]
fn written_files_count_as_read() {
    let bench = Bench::new();
    assert_eq!(overwrite(&bench, "one\n").status, ToolStatus::Succeeded);
    assert_eq!(overwrite(&bench, "two\n").status, ToolStatus::Succeeded);
    bench.output("EditFile", json!({"path": "f", "oldText": "two", "newText": "three"}));
    assert_eq!(overwrite(&bench, "four\n").status, ToolStatus::Succeeded);
    bench.write("f", "theirs\n");
    refused(overwrite(&bench, "five\n"));
}

#[test]
fn changes_are_detected_by_content_and_not_by_modification_time() {
    let bench = Bench::new();
    bench.write("f", "one\n");
    bench.output("ReadFile", json!({"path": "f"}));
    let file = fs::File::options().write(true).open(bench.path("f")).unwrap();
    file.set_modified(std::time::UNIX_EPOCH).unwrap();
    assert_eq!(overwrite(&bench, "two\n").status, ToolStatus::Succeeded);
    // A file with the same size and time but other content is different.
    bench.output("ReadFile", json!({"path": "f"}));
    let time = fs::metadata(bench.path("f")).unwrap().modified().unwrap();
    bench.write("f", "TWO\n");
    fs::File::options().write(true).open(bench.path("f")).unwrap().set_modified(time).unwrap();
    refused(overwrite(&bench, "three\n"));
}

#[test]
fn text_edits_work_in_changed_files_and_do_not_count_as_a_read() {
    let bench = Bench::new();
    bench.write("f", "one\ntwo\n");
    bench.output("ReadFile", json!({"path": "f"}));
    bench.write("f", "one\ntwo\ntheirs\n");
    bench.output("EditFile", json!({"path": "f", "oldText": "one", "newText": "1"}));
    assert_eq!(bench.read("f"), b"1\ntwo\ntheirs\n");
    refused(overwrite(&bench, "one\ntwo\n"));
}

#[test]
fn changes_by_commands_are_detected() {
    let bench = Bench::new();
    bench.write("f", "one\n");
    bench.output("ReadFile", json!({"path": "f"}));
    bench.output("RunCommand", json!({"command": "echo more >> f"}));
    refused(overwrite(&bench, "two\n"));
}
