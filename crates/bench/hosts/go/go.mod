module thalweg.dev/bench/go_chan

go 1.21
