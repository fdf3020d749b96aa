module thalweg.dev/go/thalweg

go 1.24
