//! Policy from a URL: its restrictions, and failures of the server.

use crate::support::{Answer, Fault, ObjectServer, Output, Project, Server};
use flate2::{Compression, write::GzEncoder};
use serde_json::json;
use std::io::Write;

const BUNDLE: &str = "policy/bundle.tar.gz";
const NO_WRITES: &str =
    "schema_version = 1\nbundle_version = \"7\"\n[capabilities.\"File.Write\"]\nallowed_paths = [\"/nowhere\"]\n";

/// Returns an archive of these files.
fn archive(files: &[(&str, &str)]) -> Vec<u8> {
    let mut tar = Vec::new();
    for (name, content) in files {
        let mut block = [0_u8; 512];
        block[..name.len()].copy_from_slice(name.as_bytes());
        block[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
        block[156] = b'0';
        block[148..156].copy_from_slice(b"        ");
        let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
        block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        tar.extend_from_slice(&block);
        tar.extend_from_slice(content.as_bytes());
        tar.resize(tar.len().next_multiple_of(512), 0);
    }
    tar.resize(tar.len() + 1024, 0);
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&tar).unwrap();
    encoder.finish().unwrap()
}

/// Returns a model that writes one file per prompt.
fn model() -> Server {
    Server::with_responder(|request| {
        let (prompts, calls) = (request.messages().matches("write it").count(), request.tool_results().len());
        if calls < prompts {
            Answer::call(&format!("call_{calls}"), "WriteFile", json!({"path": "new.txt", "content": "new\n"}))
        } else {
            Answer::text("Done.")
        }
    })
}

fn project(server: &Server, web: &ObjectServer) -> Project {
    let config = format!("[services.policy]\nurl = \"{}/team/{BUNDLE}\"\n", web.url());
    Project::with(server).config(&config).allowing_everything()
}

/// Makes the next session query the server again.
fn forget_the_time(project: &Project) {
    let state = project.directory("data").join("service-policy/state.json");
    let mut text: serde_json::Value = serde_json::from_slice(&std::fs::read(&state).unwrap()).unwrap();
    text["checked"] = json!("2026-01-01T00:00:00Z");
    std::fs::write(state, text.to_string()).unwrap();
}

#[track_caller]
fn writes(project: &Project, expected: bool) -> Output {
    let _ = std::fs::remove_file(project.path("new.txt"));
    let output = project.aye(&["exec", "write it"]);
    assert_eq!(project.exists("new.txt"), expected, "{output:?}");
    output
}

#[test]
fn a_bundle_tightens_every_session_and_is_requested_only_when_it_is_due() {
    let (web, server) = (ObjectServer::start(), model());
    web.write(BUNDLE, &archive(&[("policy.toml", NO_WRITES), (".manifest", "{\"revision\": \"r7\"}")]));
    let project = project(&server, &web);
    let first = writes(&project, false);
    assert!(first.stderr.contains("loaded the policy from") && first.stderr.contains("revision r7"), "{}", first.stderr);
    writes(&project, false);
    assert_eq!(web.log().len(), 1, "it was checked a moment ago: {:?}", web.log());
    forget_the_time(&project);
    let same = writes(&project, false);
    assert!(!same.stderr.contains("loaded the policy"), "{}", same.stderr);
    let shown = project.aye(&["policy", "show"]).exits(0).stdout;
    assert!(shown.contains("service"), "{shown}");
    web.write(BUNDLE, &archive(&[("policy.toml", "schema_version = 1\nbundle_version = \"8\"\n")]));
    project.aye(&["policy", "pull"]).exits(0);
    writes(&project, true);
}

#[test]
fn a_service_bundle_never_loosens_the_policy() {
    let (web, server) = (ObjectServer::start(), model());
    let loose = "schema_version = 1\nbundle_version = \"1\"\n[capabilities.\"File.Write\"]\nrequires_approval = false\n\
        unprotected_paths = [\"/etc/**\"]\n[[capabilities.\"File.Write\".rules]]\npaths = [\"**\"]\ndecision = \"allow\"\n";
    web.write(BUNDLE, &archive(&[("policy.toml", loose)]));
    let project = project(&server, &web).policy("schema_version = 1\n[capabilities.\"File.Read\"]\n");
    let output = writes(&project, false);
    assert!(output.stderr.contains("can only add restrictions; ignored"), "{}", output.stderr);
}

#[test]
fn no_session_starts_without_a_valid_policy_and_the_last_valid_one_stays_in_force() {
    let (web, server) = (ObjectServer::start(), model());
    let project = project(&server, &web);
    let missing = writes(&project, false);
    assert_eq!(missing.code, 1, "{missing:?}");
    assert!(missing.stderr.contains("404") && missing.stderr.contains("no session starts"), "{}", missing.stderr);
    let unloaded = project.aye(&["policy", "show"]).exits(1).stderr;
    assert!(unloaded.contains("404"), "{unloaded}");
    web.write(BUNDLE, &archive(&[("policy.toml", NO_WRITES)]));
    writes(&project, false);
    let whole = archive(&[("policy.toml", "schema_version = 1\n")]);
    let expired = archive(&[("policy.toml", "schema_version = 1\nexpires_at = 2020-01-01T00:00:00Z\n")]);
    for (name, bundle, fault, why) in [
        ("down", None, Some(Fault::Status(503)), "503"),
        ("half an answer", Some(whole.clone()), Some(Fault::Half), ""),
        ("half an archive", Some(whole[..whole.len() / 2].to_vec()), None, ""),
        ("not an archive", Some(b"<html>".to_vec()), None, "not a gzip-compressed archive"),
        ("no policy", Some(archive(&[("data.json", "{}")])), None, "`policy.toml` is missing"),
        ("an invalid policy", Some(archive(&[("policy.toml", "schema_version = 99\n")])), None, "schema_version"),
        ("an expired policy", Some(expired), None, "has expired"),
        ("a path that leaves", Some(archive(&[("../policy.toml", "schema_version = 1\n")])), None, "invalid name"),
    ] {
        if let Some(bundle) = bundle {
            web.write(BUNDLE, &bundle);
        }
        if let Some(fault) = fault {
            web.fail("GET", "bundle", 1, fault);
        }
        forget_the_time(&project);
        let output = writes(&project, false);
        // The last valid policy denied the call.
        assert_eq!(output.code, 3, "{name}: {output:?}");
        assert!(
            output.stderr.contains("last good policy stays in effect") && output.stderr.contains(why),
            "{name}: {}",
            output.stderr
        );
        web.recover();
    }
}

#[test]
fn unsigned_bundles_are_rejected_and_projects_cannot_configure_a_service() {
    let (web, server) = (ObjectServer::start(), model());
    web.write(BUNDLE, &archive(&[("policy.toml", "schema_version = 1\n")]));
    let key = "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEaxfR8uEsQkf4vOblY6RA8ncDfYEt\n\
        6zOg9KE5RdiYwpZP40Li/hp/m47n60p8D54WK84zV2sxXs7LtkBoN79R9Q==\n-----END PUBLIC KEY-----\n";
    let config = format!("[services.policy]\nurl = \"{}/team/{BUNDLE}\"\npublic_key = \"key.pem\"\n", web.url());
    let project = Project::with(&server).config(&config).allowing_everything();
    std::fs::write(project.directory("config").join("key.pem"), key).unwrap();
    let unsigned = writes(&project, false);
    assert!(unsigned.stderr.contains("the bundle is not signed"), "{}", unsigned.stderr);
    let project = project.config("").file(".aye/config.toml", &config);
    let output = project.aye(&["exec", "--trust", "write it"]).exits(0);
    assert!(output.stderr.contains("`services.policy.url` is ignored"), "{}", output.stderr);
    assert!(project.exists("new.txt"));
}
