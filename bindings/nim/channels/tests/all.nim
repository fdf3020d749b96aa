import ./unit, ./model, ./messages, ./stress, ./async
