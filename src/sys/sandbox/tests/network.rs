//! Tests of a command's network access. The client is this program itself, so the tests do not depend on a shell.

use super::*;
use std::net::{SocketAddr, TcpListener, TcpStream};

/// Address in a range reserved for documentation, at which there is no server.
const NOBODY: &str = "192.0.2.1:80";
const ADDRESS: &str = "AYE_TEST_ADDRESS";
const CLIENT: &str = "sys::sandbox::tests::network::a_client_reports_its_connection";

#[test]
#[ignore = "child process of another test"]
fn a_client_reports_its_connection() {
    let address: SocketAddr = std::env::var(ADDRESS).unwrap().parse().unwrap();
    match TcpStream::connect_timeout(&address, Duration::from_secs(5)) {
        Ok(_) => println!("\nreached"),
        Err(error) => println!("\nnot reached: {error}"),
    }
}

/// Returns whether an empty network namespace keeps a client from connecting to the address. It does not if software
/// outside this machine intercepts connections.
fn kernel_holds(address: &str) -> bool {
    let mut client = std::process::Command::new("unshare");
    client.args(["--user", "--map-root-user", "--net"]).arg(std::env::current_exe().unwrap());
    client.args(["--ignored", "--exact", CLIENT, "--nocapture"]).env(ADDRESS, address);
    let reached = client.output().is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("\nreached"));
    if reached {
        println!("skipped: on this machine an empty network namespace reaches {address} as well");
    }
    !reached
}

/// Runs a confined client and returns what it reports about the connection.
async fn connection(ground: &Ground, address: &str, confinement: Confinement) -> String {
    // A command has its own `/tmp`, and the tests may have been built in the real one.
    let client = ground.path("client");
    let program = std::env::current_exe().unwrap();
    if fs::hard_link(&program, &client).is_err() {
        fs::copy(&program, &client).unwrap();
    }
    let line = format!("{ADDRESS}={address} '{}' --ignored --exact {CLIENT} --nocapture", client.display());
    let text = output(&line, confinement).await;
    let said = text.lines().find(|line| line.contains("reached"));
    said.unwrap_or_else(|| panic!("the client did not run: {text}")).to_owned()
}

fn open(ground: &Ground) -> Confinement {
    Confinement { network: NetworkAccess::Open, ..ground.confinement() }
}

async fn namespace(confinement: Confinement) -> String {
    output("readlink /proc/self/ns/net", confinement).await.trim_end().to_owned()
}

#[tokio::test]
async fn a_command_has_its_own_network_namespace() {
    let ground = Ground::new();
    let machine = fs::read_link("/proc/self/ns/net").unwrap();
    assert_ne!(namespace(ground.confinement()).await, machine.to_str().unwrap());
}

#[tokio::test]
async fn local_servers_are_unreachable() {
    let ground = Ground::new();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap().to_string();
    let said = connection(&ground, &address, ground.confinement()).await;
    assert!(said.starts_with("not reached") || !kernel_holds(&address), "{said}");
}

#[tokio::test]
async fn remote_servers_are_unreachable() {
    let ground = Ground::new();
    let said = connection(&ground, NOBODY, ground.confinement()).await;
    assert!(said.starts_with("not reached") || !kernel_holds(NOBODY), "{said}");
}

#[tokio::test]
async fn a_command_with_full_network_access_uses_the_host_network() {
    let ground = Ground::new();
    let machine = fs::read_link("/proc/self/ns/net").unwrap();
    assert_eq!(namespace(open(&ground)).await, machine.to_str().unwrap());
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    assert_eq!(connection(&ground, &server.local_addr().unwrap().to_string(), open(&ground)).await, "reached");
}
