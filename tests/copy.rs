//! `claim copy` between folders: never onto itself, into itself, or around itself, however they are named.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod support;

use std::fs;
use std::os::unix::fs::symlink;

use support::World;

#[test]
fn a_directory_is_not_copied_onto_or_into_or_around_itself() {
    let world = World::new();
    for id in ["a", "b", "c/d"] {
        world.take(&format!("{id} --owner o"));
    }
    fs::create_dir(world.root.join("beside")).unwrap();
    symlink(".claims", world.root.join("link")).unwrap();
    symlink("..", world.root.join("beside/up")).unwrap();
    symlink(".claims/inner", world.root.join("dangling")).unwrap();
    let outer = world.root.join("outer/.claims");
    fs::create_dir_all(outer.join("x/.claims/.store")).unwrap();
    fs::create_dir(outer.join(".store")).unwrap();
    let before = world.snapshot();
    for to in [
        ".claims",
        "./beside/../.claims",
        "link",
        "link/",
        "beside/up/.claims",
        ".claims/inner",
        ".claims/c/new/deep",
        ".claims/.store/x",
        "link/inner",
        "missing/../.claims",
        "missing/../link/inner",
        "beside/up/.claims/inner",
    ] {
        world.refused(&format!("copy --live --from .claims --to {to}"), 2, "USAGE");
        world.refused(&format!("copy --live --from link --to {to}"), 2, "USAGE");
    }
    for to in ["dangling", "dangling/x"] {
        assert_ne!(world.say(&format!("copy --live --from .claims --to {to}")).exit, 0, "{to}");
    }
    world.refused("copy --from outer/.claims/x/.claims --to outer/.claims", 2, "USAGE");
    assert_eq!(world.snapshot(), before, "nothing was written");
    // Beside it, also under a name that begins alike, is another place.
    for to in [".claims2", "beside/.claims"] {
        assert_eq!(world.say(&format!("copy --live --from .claims --to {to}")).exit, 0, "{to}");
    }
    assert_eq!(world.say("doctor").exit, 0);
}
