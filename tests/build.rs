fn main() {
    let object = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/limiter.o");
    println!("cargo:rerun-if-changed={}", object.display());
    println!("cargo:rustc-env=LIMITER_OBJECT={}", object.display());
}
