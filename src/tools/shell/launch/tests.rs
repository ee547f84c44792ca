use super::*;
use crate::protocol::SandboxTier;
use crate::sys::sandbox::NetworkAccess;
use crate::tools::sandbox::SandboxPolicy;
use crate::tools::tests::{Bench, block_on};
use std::fs;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

fn program(bench: &Bench, line: &str) -> ServerProgram {
    ServerProgram {
        server: "docs".to_owned(),
        argv: ["bash", "-c", line].map(str::to_owned).to_vec(),
        environment: vec![("TOKEN_OF_DOCS".to_owned(), "ours; $HOME".to_owned())],
        directory: Some(bench.root.join("ws")),
        network: false,
        sees: Vec::new(),
    }
}

/// Starts a server, sends it one line, reads its response, and ends it.
async fn said(launcher: &ServerLauncher, program: ServerProgram) -> Result<Vec<String>, String> {
    let mut launched = launcher.launch(program).await?;
    launched.input.write_all(b"hello\n").await.unwrap();
    let mut lines = Vec::new();
    let mut output = BufReader::new(launched.output).lines();
    while let Some(line) = output.next_line().await.unwrap() {
        let over = line == "over";
        lines.push(line);
        if over {
            break;
        }
    }
    (launched.end)().await;
    assert_eq!(output.next_line().await.unwrap(), None, "it is gone");
    Ok(lines)
}

const SERVER: &str = r#"read -r said; echo "$said, $TOKEN_OF_DOCS"; pwd; echo made > here.txt; echo made > ../outside.txt; echo over
    sleep 1000 & cat > /dev/null"#;

#[test]
fn servers_run_in_their_directory_and_exit_when_stdin_closes() {
    let bench = Bench::new();
    let launcher = ServerLauncher::new(bench.settings.clone());
    let lines = block_on(said(&launcher, program(&bench, SERVER))).unwrap();
    let workspace = bench.settings.workspace.display().to_string();
    assert_eq!(lines, ["hello, ours; $HOME", workspace.as_str(), "over"]);
    assert!(bench.path("here.txt").exists() && bench.root.join("outside.txt").exists(), "nothing holds it");
}

#[test]
fn servers_run_in_the_same_sandbox_as_commands() {
    let mut bench = Bench::new();
    let mut sandbox = SandboxPolicy::unsandboxed();
    (sandbox.tier, sandbox.network) = (SandboxTier::Guarded, NetworkAccess::Proxied);
    sandbox.paths.roots = vec![bench.settings.workspace.clone()];
    bench.settings.command.sandbox = sandbox;
    let launcher = ServerLauncher::new(bench.settings.clone());
    match block_on(said(&launcher, program(&bench, SERVER))) {
        Ok(lines) => assert_eq!((lines.len(), lines[0].as_str()), (3, "hello, ours; $HOME")),
        Err(why) => return eprintln!("skipped: {why}"),
    }
    assert!(bench.path("here.txt").exists() && !bench.root.join("outside.txt").exists());
    // The new settings apply to servers that start later.
    launcher.set_settings(crate::tools::tests::settings(bench.settings.workspace.clone(), bench.root.join("home")));
    block_on(said(&launcher, program(&bench, SERVER))).unwrap();
    assert!(bench.root.join("outside.txt").exists());
}

#[test]
fn a_failed_start_reports_the_reason() {
    let bench = Bench::new();
    let launcher = ServerLauncher::new(bench.settings.clone());
    let elsewhere = ServerProgram { directory: Some("nowhere".into()), ..program(&bench, "true") };
    let told = block_on(launcher.launch(elsewhere)).err().unwrap();
    assert!(told.contains("nowhere") && told.contains("cannot use"), "{told}");
    let broken = ServerProgram { argv: vec!["a\0b".to_owned()], ..program(&bench, "true") };
    assert!(block_on(launcher.launch(broken)).err().unwrap().contains("NUL"));
}

#[test]
fn dropping_a_server_kills_its_processes() {
    let bench = Bench::new();
    fs::create_dir_all(bench.root.join("ws")).unwrap();
    let launcher = ServerLauncher::new(bench.settings.clone());
    block_on(async {
        let launched = launcher.launch(program(&bench, "sleep 1000 & cat > /dev/null")).await.unwrap();
        let mut output = BufReader::new(launched.output).lines();
        drop(launched.end);
        assert_eq!(output.next_line().await.unwrap(), None);
    });
}
