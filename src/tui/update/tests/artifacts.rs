use super::*;
use crate::protocol::{Artifact, ArtifactKind};
use crate::tui::layers::{Overview, TextViewer};
use crate::tui::tests::fixtures::completed;

fn artifact(uri: &str, name: &str, bytes: u64) -> Artifact {
    let content_type = "text/plain".to_owned();
    Artifact { uri: uri.to_owned(), kind: ArtifactKind::ToolOutput, name: name.to_owned(), content_type, bytes }
}

#[test]
fn saved_output_is_reported_listed_and_opened() {
    let mut model = model(80, 24);
    tell(&mut model, requested("a", "RunCommand", "$ seq 20000"), 0);
    let mut ended = completed("a", ToolStatus::Succeeded, "Exit code: 0\n--- stdout ---\n1\n2\n--- stderr ---", None);
    if let EventKind::ToolCompleted { artifact_uris, .. } = &mut ended {
        artifact_uris.push("artifact:1".to_owned());
    }
    tell(&mut model, ended, 100);
    play(&mut model, 200, "<^o>");
    let drawn = draw(&mut model, 300);
    assert!(drawn.contains("saved in full") && drawn.contains("/artifacts opens it"), "{drawn}");
    assert_eq!(play(&mut model, 1000, "/artifacts<enter>"), ["listartifacts"]);
    let kept = vec![artifact("artifact:1", "output of seq\u{1b}[2J", 2_411_725), artifact("artifact:2", "diff of a", 20_000)];
    tell(&mut model, EventKind::ArtifactsListed { artifacts: kept }, 1100);
    let drawn = draw(&mut model, 1200);
    assert!(drawn.contains("Artifacts") && drawn.contains("1   2.3 MB  output of seq"), "{drawn}");
    assert_eq!(play(&mut model, 1300, "<enter>"), ["readartifact { uri: \"artifact:1\" }"]);
    assert!(!model.layers.is_open::<Overview>());
    assert_eq!(play(&mut model, 2000, "/artifacts 3<enter>"), [""; 0]);
    play(&mut model, 2100, "<^c>");
    assert_eq!(play(&mut model, 3000, "/artifacts 1<enter>"), ["readartifact { uri: \"artifact:1\" }"]);
    let text = (1..=1000).map(|line| format!("line {line} \u{1b}[31mred")).collect::<Vec<_>>().join("\n");
    tell(&mut model, EventKind::ArtifactRead { artifact: artifact("artifact:1", "output of seq", 2_411_725), text }, 3100);
    let drawn = draw(&mut model, 3200);
    assert!(
        drawn.contains("output of seq, 2.3 MB, artifact:1") && drawn.contains("line 1 ") && !drawn.contains('\u{1b}'),
        "{drawn}"
    );
    play(&mut model, 3300, "<end>");
    let drawn = draw(&mut model, 3400);
    assert!(drawn.contains("line 1000") && !drawn.contains("line 1 "), "{drawn}");
    play(&mut model, 3500, "<esc>");
    assert!(!model.layers.is_open::<TextViewer>());
}

#[test]
fn lists_fit_a_narrow_screen() {
    let mut model = model(40, 20);
    tell(&mut model, requested("a", "Tool", "x"), 0);
    let mut ended = completed("a", ToolStatus::Succeeded, "1", None);
    if let EventKind::ToolCompleted { tool_name, .. } = &mut ended {
        *tool_name = "a_tool_with_a_very_long_name".to_owned();
    }
    tell(&mut model, ended, 100);
    play(&mut model, 1000, "/stats<enter>");
    let drawn = draw(&mut model, 1900);
    let head = drawn.lines().nth(2).unwrap_or_default();
    assert!(head.contains("calls") && !head.contains("longest") && drawn.contains("a_tool_with_a"), "{drawn}");
    play(&mut model, 2000, "<esc>/artifacts<enter>");
    let kept = vec![artifact("artifact:1", "output of a line that goes on and on and on and on", 2_411_725)];
    tell(&mut model, EventKind::ArtifactsListed { artifacts: kept }, 2100);
    let drawn = draw(&mut model, 2200);
    assert!(drawn.contains("1  2.3 MB  output of a line that goes…"), "{drawn}");
}
