fn main() {
    env_logger::init();
    match limiter_tests::program::load() {
        Ok((_, n)) => println!("verified {n}"),
        Err(e) => {
            let mut s = format!("{e:?}").replace("\\n", "\n");
            if s.len() > 60000000000 {
                s = s[s.len() - 600000..].into()
            };
            println!("{s}")
        }
    }
}
