module lab

go 1.24

require thalweg.dev/go/thalweg v0.0.0

replace thalweg.dev/go/thalweg => ../../../../bindings/go
