//! `aye setup`: the model and the policy, from flags or from answers. Existing settings are preserved.

use crate::support::{Answer, Project, Server, Terminal, texts};
use std::fs;

#[test]
fn setup_with_yes_writes_the_given_settings_and_keeps_existing_ones() {
    let project = Project::empty();
    let file = |name: &str| fs::read_to_string(project.directory("config").join(name)).unwrap();
    project.aye(&["setup", "--yes", "--policy", "strict", "-m", "anthropic/claude-x"]).exits(0);
    assert!(file("policy.toml").contains("bundle_version = \"strict.1\""));
    assert_eq!(file("config.toml"), "[model]\ndefault = \"anthropic/claude-x\"\n");
    let told = project.aye(&["setup", "--yes", "-m", "anthropic/claude-y"]).exits(0);
    assert!(told.stdout.contains("uses anthropic/claude-x") && told.stdout.contains("unchanged"), "{}", told.stdout);
    assert!(file("policy.toml").contains("strict.1"));
    project.aye(&["setup", "--yes", "--policy", "relaxed"]).exits(0);
    assert!(file("policy.toml").contains("relaxed.1") && file("policy.toml.1").contains("strict.1"), "the old one is kept");
    project.aye(&["setup", "--yes", "--policy", "lax"]).exits(2).says(&["must be ask, strict, relaxed or readonly"]);
    project.aye(&["setup"]).exits(2).says(&["aye setup --yes"]);
}

#[test]
fn setup_suggests_importing_settings_of_other_agents() {
    let project = Project::empty();
    let told = project.aye(&["setup", "--yes"]).exits(0);
    assert!(!told.stdout.contains("aye import"), "{}", told.stdout);
    fs::create_dir(project.directory("home").join(".claude")).unwrap();
    let told = project.aye(&["setup", "--yes"]).exits(0);
    assert!(told.stdout.contains("Found settings of Claude Code; `aye import claude`"), "{}", told.stdout);
    let server = Server::new([]);
    let project = Project::with(&server).at_first_start();
    fs::create_dir_all(project.directory("home").join(".codex")).unwrap();
    let mut terminal = project.open_sized(&["--trust"], 100, 40);
    let screen = terminal.wait_for("aye import codex");
    assert!(screen.contains("Found settings of Codex"), "{screen}");
}

#[test]
fn nested_aye_processes_cannot_run_setup() {
    Project::empty().env("AYE", "1").aye(&["setup", "--yes"]).exits(2).says(&["AYE=1"]);
}

#[test]
fn setup_works_in_plain_mode_and_the_session_continues() {
    let server = Server::new([Answer::text("Hello."), Answer::text("Still here.")]);
    let project = Project::with(&server).env("TERM", "dumb");
    let mut terminal = project.open_sized(&["--trust"], 100, 60);
    terminal.wait_for("You:");
    terminal.send("hello\n");
    terminal.wait_for("aye: Hello.");
    terminal.wait_that("a line is asked for", |screen| screen.trim_end().ends_with("You:"));
    terminal.send("/setup\n");
    let screen = terminal.wait_for("Default model:");
    assert!(screen.contains("found: ANTHROPIC_API_KEY"), "{screen}");
    assert!(!screen.contains("sk-ant-scripted"), "{screen}");
    terminal.send("\n");
    let screen = terminal.wait_for("Approvals (command, effects or auto)");
    assert!(screen.contains("effects: ask about effects  (suggested)"), "{screen}");
    terminal.send("sometimes\n");
    terminal.wait_for("must be command, effects or auto");
    terminal.send("command\n");
    terminal.wait_for("Check daily? [y/N]");
    terminal.send("\n");
    terminal.wait_for("wrote");
    terminal.send("are you there\n");
    terminal.wait_for("aye: Still here.");
    let config = fs::read_to_string(project.directory("config").join("config.toml")).unwrap();
    assert!(config.contains("approve = \"command\"") && config.contains("mode = \"ask\""), "{config}");
    assert!(server.request(1).messages().contains("hello"), "it is the same session");
}

#[test]
fn the_start_screen_shows_the_last_session_and_open_tasks() {
    let server = Server::new([Answer::text("Hello.")]);
    let project = Project::with(&server).file("src/main.rs", "fn main() {}\n// TODO: greet\n");
    let mut terminal = project.open(&["greet the world"]);
    terminal.wait_for("Hello.");
    assert!(terminal.quit().success());
    let mut terminal = project.open(&[]);
    let screen = terminal.wait_for("Last session: \"greet the world\"");
    assert!(screen.contains("look into the TODO in src/main.rs:2"), "{screen}");
}

/// Returns the permissions of a settings file of the user.
fn mode(project: &Project, name: &str) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(project.directory("config").join(name)).unwrap().permissions().mode() & 0o777
}

/// Presses the letter of a visible choice once the choice accepts keys.
fn press(terminal: &mut Terminal, letter: char) {
    let shown = |screen: &str| screen.contains(&format!("{letter}  ")) && !screen.contains('◔');
    terminal.wait_that("the question takes keys", shown);
    Terminal::react();
    terminal.send(letter.encode_utf8(&mut [0; 4]));
}

/// Saves the card: presses `y` and confirms with Enter.
fn save(terminal: &mut Terminal) {
    press(terminal, 'y');
    terminal.wait_for(texts::ENTER_CONFIRM);
    Terminal::react();
    terminal.enter();
}

/// Flags that hide the local model servers of this machine.
const ALONE: [&str; 2] = ["--set", "llm.local_ports=[]"];

/// Waits for the card of the setup and sends these keys.
fn at_card(terminal: &mut Terminal, keys: &str) {
    terminal.wait_for(texts::SETUP_CARD);
    press_keys(terminal, keys);
}

/// Sends these keys once the card accepts keys.
fn press_keys(terminal: &mut Terminal, keys: &str) {
    terminal.wait_that("the card takes keys", |screen| screen.contains("up down row"));
    Terminal::react();
    terminal.send(keys);
}

const UP: &str = "\x1b[A";
const DOWN: &str = "\x1b[B";
const RIGHT: &str = "\x1b[C";
const LEFT: &str = "\x1b[D";

#[test]
fn the_first_start_shows_one_card_and_a_skipped_card_does_not_return() {
    let project = Project::empty();
    let mut terminal = project.open(&ALONE);
    let screen = terminal.wait_for(texts::SETUP_CARD);
    assert!(screen.contains("No API key was found in the environment"), "{screen}");
    for row in [
        "model      none; choose one later",
        "approvals  ask about every command · current",
        "model list built-in",
        "theme      auto",
    ] {
        assert!(screen.contains(row), "{screen}");
    }
    at_card(&mut terminal, DOWN);
    terminal.wait_for("sandbox: ");
    press(&mut terminal, 's');
    terminal.wait_for("run /setup to see");
    assert!(
        !project.directory("config").join("policy.toml").exists() && !project.directory("config").join("config.toml").exists()
    );
    assert!(terminal.quit().success());
    let mut terminal = project.open(&ALONE);
    terminal.prompt("hello");
    let screen = terminal.wait_for(texts::NOT_SENT);
    assert!(!screen.contains(texts::SETUP_CARD), "{screen}");
}

#[test]
fn the_first_start_configures_a_custom_server_and_the_approvals() {
    let server = Server::new([Answer::text("ok"), Answer::text("Hello from my server.")]);
    let project = Project::empty();
    let mut terminal = project.open(&ALONE);
    terminal.wait_for(texts::SETUP_CARD);
    press(&mut terminal, 'u');
    terminal.wait_for("address:");
    terminal.send(&format!("\x1b[200~{}/v1 my-model\x1b[201~", server.url()));
    terminal.wait_for("my-model");
    terminal.enter();
    terminal.wait_for("API key for that server");
    terminal.send("my-secret-key-of-this-server");
    terminal.wait_for("28 characters");
    terminal.enter();
    let screen = terminal.wait_for("Not tested yet.");
    assert!(!screen.contains("my-secret"), "{screen}");
    press(&mut terminal, 't');
    terminal.wait_for("It works: custom/my-model responded in");
    assert_eq!(server.request(0).header("authorization"), Some("Bearer my-secret-key-of-this-server"));
    assert!(!project.directory("config").join("config.toml").exists(), "nothing is kept before the yes");
    press_keys(&mut terminal, UP);
    terminal.wait_for("▸ theme");
    press_keys(&mut terminal, RIGHT);
    terminal.wait_for("▸ theme      dark");
    press_keys(&mut terminal, UP);
    terminal.wait_for("▸ model list");
    press_keys(&mut terminal, UP);
    terminal.wait_for("▸ approvals");
    for value in ["ask about effects", "auto"] {
        press_keys(&mut terminal, RIGHT);
        terminal.wait_for(&format!("▸ approvals  {value}"));
    }
    save(&mut terminal);
    terminal.wait_until_gone(texts::SETUP_CARD);
    terminal.wait_that("the choice applies at once", |screen| screen.lines().rev().take(3).any(|row| row.contains("auto")));
    let file = |name: &str| fs::read_to_string(project.directory("config").join(name)).unwrap();
    let config = file("config.toml");
    for line in
        ["default = \"custom/my-model\"", &format!("base_url = \"{}/v1\"", server.url()), "theme = \"dark\"", "mode = \"auto\""]
    {
        assert!(config.contains(line), "{config}");
    }
    assert!(!project.directory("config").join("policy.toml").exists());
    assert!(file("credentials.toml").contains("my-secret-key-of-this-server"));
    for name in ["config.toml", "credentials.toml"] {
        assert_eq!(mode(&project, name), 0o600, "{name}");
    }
    terminal.prompt("are you there");
    terminal.wait_for("Hello from my server.");
    assert!(!server.request(1).messages().contains("my-secret"));
}

#[test]
fn a_first_start_with_an_environment_key_keeps_the_model() {
    let server = Server::new([Answer::text("Hello.")]);
    let project = Project::with(&server).at_first_start();
    let mut terminal = project.open(&ALONE);
    at_card(&mut terminal, DOWN);
    terminal.wait_for("▸ approvals");
    press_keys(&mut terminal, LEFT);
    terminal.wait_for("▸ approvals  ask about every command");
    save(&mut terminal);
    terminal.wait_until_gone(texts::SETUP_CARD);
    let config = fs::read_to_string(project.directory("config").join("config.toml")).unwrap();
    assert!(config.contains("approve = \"command\"") && config.contains("mode = \"ask\""), "{config}");
    terminal.prompt("hello");
    let screen = terminal.wait_for("Hello.");
    assert!(!screen.contains(texts::SETUP_CARD), "{screen}");
    // Without a terminal, no question is asked.
    let server = Server::new([Answer::text("Hello.")]);
    let project = Project::with(&server).at_first_start();
    let output = project.aye(&["exec", "hello"]).exits(0);
    assert!(!output.stdout.contains(texts::SETUP_CARD) && !output.stderr.contains(texts::SETUP_CARD));
}

#[test]
fn setup_tests_a_key_and_saves_it_only_after_confirmation() {
    let server = Server::new([Answer::error(401, "authentication_error", "invalid x-api-key")]);
    let project = Project::empty().env("ANTHROPIC_BASE_URL", &server.url());
    let mut terminal = project.open_sized(&["setup", "--set", "llm.local_ports=[]", "--set", "auth.keyring=false"], 100, 36);
    terminal.wait_for(texts::SETUP_CARD);
    press(&mut terminal, 'k');
    terminal.wait_for(texts::KEY_PREFIX);
    terminal.send("\x1b[200~sk-ant-api03-wrong-wrong-wrong\x1b[201~");
    terminal.wait_for("30 characters · anthropic");
    terminal.enter();
    terminal.wait_for("anthropic/claude-sonnet-5 · key: 30 characters");
    press(&mut terminal, 't');
    let screen = terminal.wait_for("The test failed:");
    assert!(screen.contains("invalid x-api-key") && !screen.contains("wrong-wrong"), "{screen}");
    press(&mut terminal, 'k');
    terminal.wait_for(texts::KEY_PREFIX);
    terminal.send("sk-ant-api03-right-right-right");
    terminal.wait_for("30 characters · anthropic");
    terminal.enter();
    terminal.wait_for("Not tested yet.");
    save(&mut terminal);
    let screen = terminal.wait_for("next: run `aye` to start");
    assert!(screen.contains("credentials.toml") && !screen.contains("right-right"), "{screen}");
    assert!(terminal.finish().success());
    let kept = fs::read_to_string(project.directory("config").join("credentials.toml")).unwrap();
    assert!(kept.contains("sk-ant-api03-right-right-right") && !kept.contains("wrong"), "{kept}");
    assert_eq!(mode(&project, "credentials.toml"), 0o600);
    assert_eq!(server.requests().len(), 1, "only the test was sent");
}

#[test]
fn the_first_start_enables_daily_model_list_updates_only_after_a_yes() {
    let server = Server::new([]);
    let project = Project::with(&server).at_first_start();
    let mut terminal = project.open(&ALONE);
    at_card(&mut terminal, DOWN);
    terminal.wait_for("▸ approvals");
    press_keys(&mut terminal, DOWN);
    let screen = terminal.wait_for("▸ model list");
    assert!(screen.contains("https://models.dev/api.json"), "{screen}");
    let config = project.directory("config").join("config.toml");
    press_keys(&mut terminal, RIGHT);
    terminal.wait_for("▸ model list check daily");
    assert!(!config.exists(), "nothing is saved before the card");
    save(&mut terminal);
    terminal.wait_until_gone(texts::SETUP_CARD);
    let config = fs::read_to_string(config).unwrap();
    for line in ["check_daily = true", "catalogue_url = \"https://models.dev/api.json\"", "approve = \"effects\""] {
        assert!(config.contains(line), "{config}");
    }
}
